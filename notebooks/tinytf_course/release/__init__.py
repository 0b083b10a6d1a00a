"""Editions for classes, and what comes back from them: all made on the teacher's side.

`students` makes the edition without answers, `assignments` nbgrader's, `collected` reads what was
handed in, and `judge` grades it in processes of its own. `python -m tinytf_course release` and
`collect` are the commands; `.github/TEACHING.md` says how a class is served.
"""
