/** Chooses the topology that keeps a queue's delays. */
import type { ConfigurationError } from "@requeue/core/adapter-kit"
import * as Ladder from "./ladder.ts"
import * as Levels from "./levels.ts"
import * as Native from "./native.ts"
import * as PerDelayQueue from "./perDelayQueue.ts"
import * as PerMessageTtl from "./perMessageTtl.ts"
import type { Topology, TopologyRequest } from "./topology.ts"
import * as WaitLoop from "./waitLoop.ts"

/**
 * The topology of the settings. `auto` is the ladder for up to 32 known delays, else the levels; so is the ladder for
 * a queue that is not ours: the rungs, which all queues share, lead back through an exchange to which it is not bound.
 */
export const choose = (request: TopologyRequest): Topology | ConfigurationError.ConfigurationError => {
  switch (request.settings.topology) {
    case "auto":
      return automatic(request)
    case "ladder":
      return request.found.isOurs ? Ladder.make(request) : Levels.make(request)
    case "levels":
      return Levels.make(request)
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

const automatic = (request: TopologyRequest): Topology => {
  const rungs = request.retry && request.found.isOurs ? Ladder.rungs(request.retry) : undefined
  return rungs === undefined || rungs.length === 0 ? Levels.make(request) : Ladder.make(request)
}
