import type { Broker, Node } from "../Broker.ts"

export interface SqsNode extends Node {
  /** Moves its clock by so many milliseconds; `undefined` where it is that of this machine. */
  readonly forward: ((milliseconds: number) => Promise<void>) | undefined
}

export type SqsBroker = Broker<SqsNode>
