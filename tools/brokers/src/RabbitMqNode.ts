import type { Broker, Node } from "./Broker.ts"

export interface RabbitMqNode extends Node {
  /** Runs `rabbitmqctl` against it and answers what that prints. */
  readonly ctl: (...args: ReadonlyArray<string>) => Promise<string>
}

export type RabbitMqBroker = Broker<RabbitMqNode>
