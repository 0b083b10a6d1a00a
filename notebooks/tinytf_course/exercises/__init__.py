"""The exercises, a folder a chapter, a file each; `tinytf_course.grading` says how to write one."""
