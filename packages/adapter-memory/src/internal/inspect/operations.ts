/** Plans of queues for operators. Queues of another process cannot be inspected. */
import { type Adapter, ConfigurationError, Plan, RetryPolicy } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { fromUrl } from "../../Options.ts"
import * as Capabilities from "../capabilities.ts"

const plan = ({ queue, retry }: Adapter.PlanRequest): Plan.Plan => ({
  broker: "memory",
  queue,
  delays: "timers of the process",
  objects: [queue, ...RetryPolicy.deadLetterQueues(retry, queue)].map((name) => ({ kind: "queue", name, details: "" })),
  flows: [...Plan.retries(queue, retry), ...Plan.deadLetters(queue, retry)],
  notes: ["queues are made on first use, and end with the process"]
})

const elsewhere = "it lives in the process that uses it"

/** The adapter's functions for the CLI. */
export const operations: Adapter.Operations = {
  plan: (request, url, options) => Effect.as(ConfigurationError.orFail(fromUrl(url, options)), plan(request)),
  operate: (url, options) =>
    Effect.map(ConfigurationError.orFail(fromUrl(url, options)), ({ maxBodySize }) => ({
      capabilities: Capabilities.make(maxBodySize ?? Number.POSITIVE_INFINITY, {}),
      plan: (request) => Effect.succeed(plan(request)),
      inspect: (request) =>
        Effect.succeed({
          objects: plan(request).objects.map((object) => ({ ...object, state: "unknown", why: elsewhere })),
          findings: []
        }),
      create: () => Effect.void
    }))
}
