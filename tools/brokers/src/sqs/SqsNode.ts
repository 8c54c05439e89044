import type { Broker, Node } from "../Broker.ts"

export interface SqsNode extends Node {
  /** Moves the server's clock forward by this many milliseconds; `undefined` if it uses the machine's clock. */
  readonly forward: ((milliseconds: number) => Promise<void>) | undefined
}

export type SqsBroker = Broker<SqsNode>
