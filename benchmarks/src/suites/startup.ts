import type { Entry } from "../Contender.ts"
import type { Case, Suite } from "../Suite.ts"

const of = (workload: string, module: string): Entry => ({
  name: module,
  contender: "startup/modules",
  workload,
  job: { module }
})

const each = (workload: string, ...modules: ReadonlyArray<string>): Case => ({
  name: workload,
  messages: 1,
  warmUp: 0,
  job: {},
  entries: [of(workload, "effect/Effect"), ...modules.map((module) => of(workload, module))]
})

export const startup: Suite = {
  name: "startup",
  summary: "how long a module takes to load, and how large it is in a bundle",
  byDefault: true,
  venue: undefined,
  rounds: 7,
  cases: () => [
    each("load", "@requeue/core", "@requeue/core/promise", "@requeue/adapter-rabbitmq", "amqplib"),
    each("bundle", "@requeue/core", "@requeue/core/promise")
  ]
}
