"""The names of chapters, for editors: `__init__.py` loads each when it is used."""

from tinytf.course.building import built as built
from tinytf.course.check import check as check
from tinytf.course.claims import ClaimError as ClaimError
from tinytf.course.claims import claim as claim
from tinytf.course.graduate import GraduationError as GraduationError
from tinytf.course.graduate import graduate as graduate
from tinytf.course.predict import predict as predict
from tinytf.course.progress import progress as progress
from tinytf.course.setup import setup as setup
from tinytf.course.yours import yours as yours
