/** Chooses the topology that keeps a queue's delays. */
import type { ConfigurationError } from "@requeue/core/port"
import * as Ladder from "./ladder.ts"
import * as Levels from "./levels.ts"
import * as Native from "./native.ts"
import * as PerDelayQueue from "./perDelayQueue.ts"
import * as PerMessageTtl from "./perMessageTtl.ts"
import type { Topology, TopologyRequest } from "./topology.ts"
import * as WaitLoop from "./waitLoop.ts"

/** The topology of the settings. `auto` is the ladder for up to 32 known delays, 8 of a queue that is not ours; else the levels. */
export const choose = (request: TopologyRequest): Topology | ConfigurationError.ConfigurationError => {
  switch (request.settings.topology) {
    case "auto":
      return automatic(request)
    case "ladder":
      return Ladder.make(request)
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

/** Known delays for which a queue that shares no rungs has rungs of its own; levels are cheaper than more. */
const ownRungs = 8

const automatic = (request: TopologyRequest): Topology => {
  const rungs = (request.retry && Ladder.rungs(request.retry)) ?? []
  const isLadder = rungs.length > 0 && (request.found.isOurs || rungs.length <= ownRungs)
  return isLadder ? Ladder.make(request) : Levels.make(request)
}
