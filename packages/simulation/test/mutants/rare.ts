/** Defects as they were that too few worlds show: each dies in the world that is kept of it, and has no seed. */
import type { Mutant } from "./Mutant.ts"

export const rare: ReadonlyArray<Mutant> = [
  {
    name: "a refusal of an ack is ignored after its run",
    file: "core/src/consume/internal/deliveries.ts",
    from: "Lifecycle.states[tag].includes(item.state._tag) && this",
    to: 'item.state._tag === "Running" && this',
    was: "A message whose last attempt had failed ran again: a lost settlement was taken for a commit."
  },
  {
    name: "the adapter for NSQ counts a message at each address",
    file: "adapter-nsq/src/internal/consume/session.ts",
    from: "receipt.deliveries > 1 &&",
    to: "receipt.deliveries > Infinity &&",
    was: "A consumer with a credit of 1 stood still after nsqd had redelivered a message at its other address."
  },
  {
    name: "the adapter for RabbitMQ takes its delay queues for foreign ones",
    file: "adapter-rabbitmq/src/internal/names.ts",
    from: "pattern(each, queue).test(name)",
    to: "name === each",
    was: "A retry with headers that nearly filled a frame stayed in the waiting queue of a waitLoop."
  },
  {
    name: "a redrive forgets the letters that it has removed",
    file: "operations/src/dead-letters/internal/seen.ts",
    from: "removed.set(name, true)",
    to: "",
    was: "A letter that SQS delivered once more after its removal was redriven twice."
  },
  {
    name: "the adapter for SQLite does not lease again when credit comes back",
    file: "adapter-sqlite/src/internal/consume/consumer.ts",
    from: "if (wasNone) refill()",
    to: "if (wasNone) wake()",
    was: "A consumer stood still after a pause of consumerBackoff, if another process had the lock when its message failed."
  }
]
