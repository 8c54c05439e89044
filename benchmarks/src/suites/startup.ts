import { entries, type Entry } from "../Contender.ts"
import type { Case, Suite } from "../Suite.ts"

const contender = entries("startup")

const of = (library: string, workload: string, module: string): Entry =>
  contender(workload, library, module, { module })

const each = (contender: string, workload: string, baseline: string, ...modules: ReadonlyArray<string>): Case => ({
  name: workload,
  messages: 1,
  warmUp: 0,
  job: {},
  entries: [of(contender, workload, baseline), ...modules.map((module) => of(contender, workload, module))]
})

const faces = ["@requeue/core", "@requeue/core/promise"]
const adapters = ["memory", "rabbitmq", "nsq", "sqs"].map((broker) => `@requeue/adapter-${broker}`)
const drivers = ["amqplib", "nsqjs", "@aws-sdk/client-sqs"]

/** Neither needs a server at the start. */
const ready: Case = {
  name: "ready",
  messages: 1,
  warmUp: 0,
  job: {},
  entries: [
    contender("connected", "modules", "connect, memory:", { address: "memory:" }),
    contender("connected", "modules", "connect, sqs:", { address: "sqs://eu-west-1" }),
    contender("lambda", "modules", "SqsLambda.handler", { address: "sqs://eu-west-1" })
  ]
}

export const startup: Suite = {
  name: "startup",
  summary:
    "how long a module takes to load, and a broker to be there; how large it is in a bundle, and what its package installs",
  byDefault: true,
  venue: undefined,
  rounds: 7,
  cases: () => [
    each("modules", "load", "effect/Effect", ...faces, ...adapters, "@requeue/adapter-sqs/lambda", ...drivers),
    ready,
    each("modules", "bundle", "effect/Effect", ...faces),
    each("packages", "install", "effect", "@requeue/core", ...adapters, ...drivers, "rascal")
  ]
}
