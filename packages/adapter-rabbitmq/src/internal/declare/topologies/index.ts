/** Chooses the topology that keeps a queue's delays. */
import type { ConfigurationError } from "@requeue/core/port"
import * as Native from "./native.ts"
import * as PerDelayQueue from "./perDelayQueue.ts"
import * as PerMessageTtl from "./perMessageTtl.ts"
import * as Quantised from "./quantised.ts"
import type { Topology, TopologyRequest } from "./topology.ts"
import * as WaitLoop from "./waitLoop.ts"

/** Returns the topology of the settings. `auto` uses rungs for few delays, levels for many, and both where that is best. */
export const choose = (request: TopologyRequest): Topology | ConfigurationError.ConfigurationError => {
  switch (request.settings.topology) {
    case "auto":
      return Quantised.make(request, "both")
    case "ladder":
      return Quantised.make(request, "rungs")
    case "levels":
      return Quantised.make(request, "levels")
    case "perMessageTtl":
      return PerMessageTtl.own(request)
    case "perMessageTtlShared":
      return PerMessageTtl.shared(request)
    case "perDelayQueue":
      return PerDelayQueue.make(request)
    case "waitLoop":
      return WaitLoop.make(request)
    case "native":
      return Native.make(request)
  }
}
