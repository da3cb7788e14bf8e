"""Neither n_steps nor a sequence."""

import rscan as rs

powers, updates = rs.scan(lambda power: power * 2, outputs_info=1.0)
