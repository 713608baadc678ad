"""What can go wrong with a server of this machine."""

from __future__ import annotations

from hermes_memory.errors import HermesError


class ServiceError(HermesError):
    """A server cannot be had or started; ``problem`` says why and what to do."""

    code = "service"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}"


class NotToBeHad(ServiceError):
    """There is no server program here, and none of the ways to get one worked."""

    code = "service_not_to_be_had"


class StartFailed(ServiceError):
    """A server did not come up; ``log`` is the end of what it wrote."""

    code = "service_start_failed"

    def __init__(self, name: str, problem: str, log: str = "") -> None:
        super().__init__(name, problem)
        self.args = (name, problem, log)
        self.log = log

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}" + (f"\n{self.log}" if self.log else "")


class PortTaken(StartFailed):
    """Another program listens on a port that the server was to have."""

    code = "service_port_taken"
