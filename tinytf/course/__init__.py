"""What a chapter needs to teach: measured claims, predictions, graded exercises."""

from tinytf.course.building import built
from tinytf.course.check import check
from tinytf.course.claims import ClaimError, claim
from tinytf.course.graduate import GraduationError, graduate
from tinytf.course.predict import predict
from tinytf.course.progress import progress
from tinytf.course.setup import setup
from tinytf.course.yours import yours

__all__ = [
    "ClaimError",
    "GraduationError",
    "built",
    "check",
    "claim",
    "graduate",
    "predict",
    "progress",
    "setup",
    "yours",
]
