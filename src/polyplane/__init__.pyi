from polyplane._version import __version__ as __version__
from polyplane.compression import compress as compress
from polyplane.exports.file import export as export
from polyplane.learners import *  # noqa: F403
from polyplane.learners.robust import RobustPlaneClassifier as RobustPlaneClassifier
from polyplane.loading import load as load
from polyplane.loading import save as save
from polyplane.model import Model as Model
from polyplane.planes import PlaneCommittee as PlaneCommittee
from polyplane.planes import PlaneSet as PlaneSet
from polyplane.search import PlaneSearchCV as PlaneSearchCV
from polyplane.tables.classifier import TableClassifier as TableClassifier
from polyplane.tables.encoder import ColumnsWarning as ColumnsWarning
from polyplane.tables.encoder import TableEncoder as TableEncoder
