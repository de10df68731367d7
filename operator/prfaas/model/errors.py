"""The one error of the model: a number it cannot work with, said in a sentence that names the field."""


class ModelError(ValueError):
    """Input outside the model's domain. `str(error)` is one line for a user; it begins with the field's
    name.
    """
