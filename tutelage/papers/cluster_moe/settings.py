"""The parameters of the paper's experiments, with its symbols."""

from typing import Annotated, Any, Literal

import numpy as np
import pydantic
from pydantic import Field

from tutelage.papers.fields import Positive
from tutelage.problem import Clustered, Clusters, Experts, Numbers, Tasks, antipodal, orthogonal
from tutelage.study import Settings

Count = Annotated[int, Field(ge=1, le=10**9)]
Orders = dict[Annotated[int, Field(ge=0, le=30)], float]


class ClusterMoeSettings(Settings):
    """Settings of `cluster_moe`. The defaults are a laboratory in which all assumptions hold and all phases are seen.

    Steps are effective ones: what multiplies `y a s'(u) (x - u w)` in an update. The paper's learning rate is `M J`
    times that in Phase I, and `J` times that in Phase III and for the vanilla network.
    """

    dim: int = Field(30, ge=3, le=10**12, description="the input dimension d.")
    radius: float = Field(3.0, ge=0, le=100, description="the distance rho of the clusters' means from the origin.")
    means: Literal["antipodal", "orthogonal"] = Field(
        "antipodal", description="where the clusters' means lie; antipodal ones are two."
    )
    correlation: float = Field(0.0, ge=0, lt=1, description="w_i.w_j, the same for every pair of tasks.")
    slant: float = Field(
        0.0, ge=0, lt=1, description="v_c.w_i, the same for all; of the opposite mean it is minus that."
    )
    cluster_weights: tuple[Positive, ...] | None = Field(
        None, description="how probable the clusters are, up to a factor; equally if not given."
    )
    local: tuple[Orders, ...] = Field(
        ({4: 1.0}, {4: -1.0}), description="the local tasks f_c, a coefficient for each order, one task per cluster."
    )
    shared: Orders = Field({4: 1.0}, description="the global task g, a coefficient for each order.")
    monic: bool = Field(False, description="coefficients are those of He_i and not of h_i = He_i/sqrt(i!).")
    interference: tuple[float, ...] = Field((1.0, -1.0), description="the weights s_c of the global task.")
    noise: float = Field(0.0, ge=0, description="the standard deviation zeta of the label noise.")
    experts: int = Field(8, ge=1, le=1000, description="the number of experts M.")
    explore_width: int = Field(4, ge=1, le=10**5, description="the neurons J of an expert in Phases I and II.")
    width: int = Field(24, ge=1, le=10**5, description="the neurons J of an expert in Phases III and IV.")
    activation: str = Field("relu", description='the experts\' activation, or "polynomial" for random polynomials.')
    degree: int | None = Field(
        None, ge=1, le=12, description="the highest order p of random polynomials; the lowest, k, if not given."
    )
    bias: float = Field(0.0, ge=0, le=10, description="biases in Phases I and III are uniform on [-bias, bias].")
    explore_step: Positive = Field(1e-3, description="the effective step of Phase I.")
    explore_samples: Count = Field(6_000_000, description="T_1, the samples of Phase I.")
    router_samples: Count = Field(400_000, description="the samples of one router step in Phase II.")
    router_steps: int = Field(1, ge=1, le=10**6, description="T_2, the router steps in Phase II.")
    router_step: Positive = Field(1.0, description="the router's learning rate eta_r.")
    router_noise: float = Field(0.0, ge=0, description="scores are compared after a number from [0, this] is added.")
    average_ties: bool = Field(
        True,
        description="Phase II averages over tied experts, and does not draw one; drawn ones add noise to the step.",
    )
    population_router: bool = Field(False, description="one step of Phase II with exact expectations, no samples.")
    reinitialise: bool = Field(True, description="experts are drawn anew before Phase III.")
    threshold: float = Field(0.0, description="Phases III and IV use every expert whose score is at least this.")
    top_k: int | None = Field(None, ge=1, description="Phases III and IV use the k best experts instead.")
    step: Positive = Field(6e-4, description="the effective step of Phase III.")
    samples: Count = Field(2_000_000, description="the samples of Phase III before the step drops.")
    late_step: Positive = Field(1e-4, description="the effective step of Phase III after the drop.")
    late_samples: Count = Field(500_000, description="the samples of Phase III after the drop.")
    ridge_samples: Count = Field(20_000, description="T_4, the samples of Phase IV.")
    ridge_activation: str | None = Field(
        None, description="the activation of Phase IV; that of the experts if not given."
    )
    ridge_bias: float = Field(3.0, ge=0, le=20, description="C_b: biases in Phase IV are uniform on [-C_b, C_b].")
    ridge: Positive = Field(1e-4, description="the ridge penalty, as lambda J^2.")
    flip: bool = Field(True, description="before Phase IV each neuron's sign is drawn anew.")
    vanilla_width: int = Field(96, ge=0, le=10**6, description="the neurons of the vanilla network; 0 for none.")
    test_samples: Count = Field(100_000, description="the fresh samples on which errors are measured.")
    precision: Literal["float64", "float32"] = Field("float64", description="of the samples and of SGD.")

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> "ClusterMoeSettings":
        count = len(self.local)
        if self.means == "antipodal" and count != 2:
            raise ValueError(f'{count} local tasks but two antipodal clusters; set means to "orthogonal"')
        if len(self.interference) != count:
            raise ValueError(f"interference has {len(self.interference)} entries but there are {count} clusters")
        if self.cluster_weights is not None and len(self.cluster_weights) != count:
            raise ValueError(f"cluster_weights has {len(self.cluster_weights)} entries but there are {count} clusters")
        if self.frame_size > self.dim:
            raise ValueError(f"dim is {self.dim} but tasks and means need {self.frame_size} orthogonal directions")
        if self.top_k is not None and self.top_k > self.experts:
            raise ValueError(f"top_k is {self.top_k} but there are {self.experts} experts")
        if self.population_router and self.router_steps > 1:
            raise ValueError("population_router is for one router step, but router_steps is larger; set it to 1")
        if self.slant and self.slant >= self._steepest:
            raise ValueError(f"slant is {self.slant:g} but a unit mean has less than {self._steepest:g} of every task")
        if self.exponent == 0:
            raise ValueError("no task has an order above 0, so that there is nothing to learn; give some coefficient")
        return self

    @property
    def clusters(self) -> int:
        """C."""
        return len(self.local)

    @property
    def frame_size(self) -> int:
        """How many orthogonal directions tasks and means take."""
        return self.clusters + 1 + (1 if self.means == "antipodal" else self.clusters)

    @property
    def exponent(self) -> int:
        """The information exponent k: the lowest order above 0 of any task."""
        found = [order for orders in (*self.local, self.shared) for order, value in orders.items() if order and value]
        return min(found, default=0)

    @property
    def kind(self) -> Any:
        """The activation as `Experts` wants it."""
        if self.activation != "polynomial":
            return self.activation
        return (self.exponent, max(self.exponent, self.degree or self.exponent))

    def about(self) -> dict[str, int | float | str]:
        """The settings that are numbers or words, as a Dataset can have them among its attributes."""
        plain = self.model_dump(mode="json").items()
        return {
            name: value for name, value in plain if isinstance(value, (int, float, str)) and not isinstance(value, bool)
        }

    def problem(self) -> Clustered:
        """Inputs and teacher. Tasks are on the first axes and means on the next, up to `correlation` and `slant`."""
        inputs = (
            antipodal(self.dim, self.radius, tasks=3)
            if self.means == "antipodal"
            else orthogonal(self.dim, self.radius, self.clusters)
        )
        directions = self._directions()
        if self.slant:
            inputs = Clusters(self.dim, self._slanted(inputs.means, directions), self.radius)
        if self.cluster_weights is not None:
            inputs = Clusters(self.dim, inputs.means, self.radius, self.cluster_weights)
        tasks = Tasks(self.local, self.shared, self.interference, directions, monic=self.monic)
        return Clustered(inputs, tasks, self.noise)

    def _directions(self) -> Numbers:
        """Unit rows of which every pair has the same product."""
        count = self.clusters + 1
        return np.linalg.cholesky((1 - self.correlation) * np.eye(count) + self.correlation)

    @property
    def _steepest(self) -> float:
        """The product with all tasks of the unit vector in their middle."""
        return float(np.sqrt((1 + self.clusters * self.correlation) / (self.clusters + 1)))

    def _slanted(self, means: Numbers, directions: Numbers) -> Numbers:
        """The means turned towards the middle of the tasks, the opposite mean away from it."""
        count = len(directions)
        middle = np.zeros(means.shape[1])
        middle[:count] = np.linalg.solve(directions, np.full(count, self.slant))
        signs = np.sign(means.sum(1))[:, None]
        return signs * middle + np.sqrt(1 - middle @ middle) * means

    def law(self, *, explore: bool) -> Experts:
        """How experts are drawn, for Phases I and II (`explore`) or III and IV."""
        return Experts(self.experts, self.explore_width if explore else self.width, self.kind, self.bias)
