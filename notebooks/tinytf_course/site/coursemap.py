"""The course map as the site's navigation: wide for a desk, tall for a phone, chapters as links."""

from tinytf_course.drawings.coursemap import draw_map


def navigation(names, chapter=None):
    """The map with links to the pages in `names` ({number: name}), `chapter` marked."""
    address = {int(number): f"{name}.html" for number, name in names.items()}.get
    dark = 'html[data-theme="dark"]'
    shapes = ("wide", False), ("tall", True)
    maps = "".join(
        f"<div class={name}>{draw_map(chapter, (), tall, address, dark)}</div>"
        for name, tall in shapes
    )
    maps = maps.replace('role="img"', 'role="group"')  # an image could have no links in it
    return f'<nav class="road-map" aria-label="The course map">{maps}</nav>'
