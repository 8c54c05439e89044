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

const adapters = ["@requeue/adapter-memory", "@requeue/adapter-rabbitmq"]

export const startup: Suite = {
  name: "startup",
  summary: "how long a module takes to load, how large it is in a bundle, and what its package installs",
  byDefault: true,
  venue: undefined,
  rounds: 7,
  cases: () => [
    each("modules", "load", "effect/Effect", "@requeue/core", "@requeue/core/promise", ...adapters, "amqplib"),
    each("modules", "bundle", "effect/Effect", "@requeue/core", "@requeue/core/promise"),
    each("packages", "install", "effect", "@requeue/core", ...adapters, "amqplib", "rascal")
  ]
}
