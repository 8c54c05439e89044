/** Suites of brokers that have a store in memory beside them. */
import { MemoryBroker, MemoryTransaction } from "@requeue/adapter-memory"
import { type Suite, WithStore } from "@requeue/conformance"

/** Returns the suite of the same broker with a store: the cases whose outcome depends on it. */
export const besideMemory = (options: Suite.Options): Suite.Options => ({
  ...options,
  name: `${options.name}, with a store`,
  layer: WithStore.layer(options.layer, WithStore.inMemory(MemoryBroker.layer(), MemoryTransaction.make)),
  cases: WithStore.cases
})
