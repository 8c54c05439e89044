/** Requeue on RabbitMQ. */
export * as RabbitMqBroker from "./RabbitMqBroker.ts"
export * as RabbitMqNative from "./RabbitMqNative.ts"
export * as RabbitMqOperator from "./RabbitMqOperator.ts"
export * as RabbitMqOptions from "./RabbitMqOptions.ts"
export * as RabbitMqPlan from "./RabbitMqPlan.ts"
export * as RabbitMqQueue from "./RabbitMqQueue.ts"
export { adapter } from "./RabbitMqBroker.ts"
