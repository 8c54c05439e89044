/** The webhooks: GitHub's own example payloads, repeated until there are enough. */
import json from "@octokit/webhooks-examples" with { type: "json" }
import { subscriberOf } from "./endpoints.ts"
import { hash, uuid } from "./random.ts"

/** One message, before it is published. */
export interface Webhook {
  readonly id: string
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

// Cast, because the package's types describe a CommonJS module with a default; the JSON itself is the list.
const definitions = json as unknown as ReadonlyArray<{ name: string; examples: ReadonlyArray<unknown> }>

/** All examples with the names of their events, shuffled to mix the kinds. */
export const examples = definitions
  .flatMap(({ examples: payloads, name }) =>
    payloads.map((payload, index) => ({ event: name, payload, order: hash(0, name, index) }))
  )
  .toSorted((a, b) => a.order - b.order)

/** The message with this number: always the same for the same seed. */
export const webhook = (seed: number, index: number): Webhook => {
  const { event, payload } = examples[index % examples.length]!
  const id = uuid(seed, "delivery", index)
  return {
    id,
    body: payload,
    headers: {
      "x-github-event": event,
      "x-github-delivery": id,
      "x-webhook-endpoint": subscriberOf(seed, id)
    }
  }
}
