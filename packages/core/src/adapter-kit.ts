/**
 * The adapter kit: the port that an adapter implements, the values that cross it, and modules that most adapters need.
 *
 * When to use: to write an adapter for a broker of your own. `AdapterOptions`, which decodes its options, is in
 * `@requeue/core/schema`, because it loads `effect/Schema`.
 */
export * as Adapter from "./port/Adapter.ts"
export * as Backoff from "./policy/Backoff.ts"
export * as Bag from "./adapter-kit/Bag.ts"
export * as BoundedMap from "./adapter-kit/BoundedMap.ts"
export * as Broker from "./port/Broker.ts"
export * as BrokerError from "./port/BrokerError.ts"
export * as Capabilities from "./port/Capabilities.ts"
export * as ConfigurationError from "./options/ConfigurationError.ts"
export * as Connection from "./port/Connection.ts"
export * as DeadLetterRouting from "./policy/DeadLetterRouting.ts"
export * as Deadlines from "./adapter-kit/Deadlines.ts"
export * as Delay from "./message/Delay.ts"
export * as Delivery from "./message/Delivery.ts"
export * as Digest from "./adapter-kit/Digest.ts"
export * as Feasibility from "./port/Feasibility.ts"
export * as Message from "./message/Message.ts"
export * as Metadata from "./message/Metadata.ts"
export * as OptionKind from "./options/OptionKind.ts"
export * as OptionNames from "./options/OptionNames.ts"
export * as Outgoing from "./message/Outgoing.ts"
export * as Reconnect from "./adapter-kit/Reconnect.ts"
export * as Plan from "./port/Plan.ts"
export * as Reconnecting from "./adapter-kit/Reconnecting.ts"
export * as RetryPolicy from "./policy/RetryPolicy.ts"
export * as Settlement from "./message/Settlement.ts"
export * as Timers from "./adapter-kit/Timers.ts"
export * as Trouble from "./port/Trouble.ts"
export * as VirtualClock from "./adapter-kit/VirtualClock.ts"
