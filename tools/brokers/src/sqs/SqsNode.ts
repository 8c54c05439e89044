import type { Broker, Node } from "../Broker.ts"

export interface SqsNode extends Node {
  /** Moves the server's clock forward by so many milliseconds; `undefined` where it uses that of this machine. */
  readonly forward: ((milliseconds: number) => Promise<void>) | undefined
}

export type SqsBroker = Broker<SqsNode>
