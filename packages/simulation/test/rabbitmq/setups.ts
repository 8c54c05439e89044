/** The servers and topologies on which the suite runs. */
import { Case, Cases, Control } from "@requeue/conformance"
import * as Layer from "effect/Layer"
import { layer, type Setup } from "./harness.ts"

/** A setup, and its cases. */
interface Suite extends Setup {
  readonly name: string
  /** Cases that the adapter fails with these options on the real server as well. Default: none. */
  readonly failing?: ReadonlyArray<string>
  /** Whether delays are late by design. Default: false. */
  readonly isLate?: boolean
  /** The groups of its cases. Default: those that depend on the topology. */
  readonly groups?: ReadonlySet<string>
}

const management = "http://localhost:15672"

/** A classic queue neither counts returns nor consumers that are cancelled. Seen on 4.3.6. */
const ofClassic = [
  "a redrive reports the letters of another reader, and another redrive takes them",
  "connections that break again and again cost no attempt of messages that wait for their batch",
  "where the broker keeps an order, what is given back comes before what was sent after it"
]

/** Groups of cases that depend on the topology. */
const ofTopologies: ReadonlySet<string> = new Set([
  "adopted queues",
  "backlog",
  "deleted queues",
  "message.fail",
  "restarts",
  "retry delays"
])

/** This topology refuses queues that it does not declare. */
const ofShared = [
  "a queue of another kind is refused with a remedy, and keeps its messages; or they have all their attempts"
]

/** The arguments of a queue with native delays belong to one policy, and cases have many: only those without delays run. */
const withoutDelays: ReadonlySet<string> = new Set(["connections", "sending"])

/** The setups on which all cases run. */
export const whole: ReadonlyArray<Suite> = [
  { name: "rabbitmq 4.3" },
  { name: "rabbitmq 3.10", server: { version: "3.10.8" } }
]

/** The setups on which all cases run in the deep tests alone. */
export const deep: ReadonlyArray<Suite> = [{ name: "rabbitmq 4.0", server: { version: "4.0.5" } }]

/** The setups on which the cases run that depend on the topology. */
export const others: ReadonlyArray<Suite> = [
  { name: "rabbitmq 4.3, ladder", options: { topology: "ladder" } },
  { name: "rabbitmq 4.3, levels", options: { topology: "levels" } },
  { name: "rabbitmq 4.3, perMessageTtl", options: { topology: "perMessageTtl" }, isLate: true },
  {
    name: "rabbitmq 4.3, perMessageTtlShared",
    options: { topology: "perMessageTtlShared" },
    isLate: true,
    failing: ofShared
  },
  { name: "rabbitmq 4.3, perDelayQueue", options: { topology: "perDelayQueue", management } },
  { name: "rabbitmq 4.3, waitLoop", options: { topology: "waitLoop" }, isLate: true },
  { name: "rabbitmq 4.3, native", options: { topology: "native" }, groups: withoutDelays },
  { name: "rabbitmq 4.3, management", options: { management } },
  { name: "rabbitmq 4.3, classic", options: { queueType: "classic" }, failing: ofClassic },
  {
    name: "rabbitmq 3.10, classic",
    server: { version: "3.10.8" },
    options: { queueType: "classic" },
    failing: ofClassic
  }
]

/** Options of `Suite.register`. */
export const toOptions = (
  { failing = [], groups = ofTopologies, isLate = false, name, ...setup }: Suite,
  isWhole: boolean
) => ({
  name,
  layer: isLate ? Layer.merge(layer(setup), Layer.succeed(Control.Control, Control.ignored)) : layer(setup),
  virtualTime: true,
  cases: Cases.cases.filter((one: Case.Case) => !failing.includes(one.name) && (isWhole || groups.has(one.group)))
})
