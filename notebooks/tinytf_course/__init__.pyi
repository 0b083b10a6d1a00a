"""The names of chapters, for editors: `__init__.py` loads each when it is used."""

from tinytf_course.building import built as built
from tinytf_course.check import check as check
from tinytf_course.claims import ClaimError as ClaimError
from tinytf_course.claims import claim as claim
from tinytf_course.graduate import GraduationError as GraduationError
from tinytf_course.graduate import graduate as graduate
from tinytf_course.predict import predict as predict
from tinytf_course.progress import progress as progress
from tinytf_course.setup import setup as setup
from tinytf_course.yours import yours as yours
