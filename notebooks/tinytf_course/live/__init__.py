"""Models that run in the reader's browser.

`assets` writes what pages load. `model.js` is the forward pass, `text.js` the tokenizers, `apps.js`
the translator and the writer.
"""
