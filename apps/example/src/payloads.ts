/** What is dispatched: GitHub's own example payloads, one message each, over and over until there are enough. */
import json from "@octokit/webhooks-examples" with { type: "json" }
import { subscriberOf } from "./endpoints.ts"
import { hash, uuid } from "./random.ts"

/** One message, before it is published. */
export interface Webhook {
  readonly id: string
  readonly body: unknown
  readonly headers: Readonly<Record<string, string>>
}

// The package's types describe a CommonJS module with a default; the JSON itself is the list.
const definitions = json as unknown as ReadonlyArray<{ name: string; examples: ReadonlyArray<unknown> }>

/** Every example of github.com with the name of its event, shuffled, so that no kind comes in a row. */
export const examples = definitions
  .flatMap(({ examples: payloads, name }) =>
    payloads.map((payload, index) => ({ event: name, payload, order: hash(0, name, index) }))
  )
  .toSorted((a, b) => a.order - b.order)

/** The message of this number, the same for the same seed. */
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
