/** Ways to write the adapter wrongly, each with the case that finds it. Keep them in step with the sources, and add more. */
import type { Mutant } from "@requeue/conformance"

export const patches: ReadonlyArray<Mutant.Patch> = [
  {
    name: "keeps an original whose copy is stored",
    kills: "what was settled comes to no other process when its subscription ends, nor when its lease would",
    file: "settle/settle.ts",
    text: 'claim.command._tag === "Remove" ? consumer.remove',
    replacement:
      'claim.settlement._tag === "DeadLetter" ? () => Promise.resolve() : claim.command._tag === "Remove" ? consumer.remove'
  },
  {
    name: "does not store the copy of what it removes",
    kills: "delayed retries count as well",
    file: "settle/settle.ts",
    text: "publish([claim.command.outgoing], dependencies)",
    replacement: "publish([], dependencies)"
  },
  {
    name: "settles a delivery twice",
    kills: "a delivery is settled once: what comes after does not reach the broker",
    file: "settle/settle.ts",
    text: "if (receipt.isTaken)",
    replacement: "if (receipt === undefined)"
  },
  {
    name: "does not count deliveries",
    kills: "maxRetries 3: attempts 1 to 4, then the dead letters",
    file: "consume/toDelivery.ts",
    text: "attempts: metadata.attempts + received.deliveries",
    replacement: "attempts: 1"
  },
  {
    name: "loses the headers",
    kills: "headers survive, with any text and with names that differ in case",
    file: "consume/toDelivery.ts",
    text: "Object.freeze(known === undefined ? { ...received.headers } : headers)",
    replacement: "Object.freeze({})"
  }
]
