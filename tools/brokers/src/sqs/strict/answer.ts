/** Answers calls as AWS does, with the results of the server behind the proxy. */
import type { AwsError } from "./AwsError.ts"
import * as Call from "./Call.ts"
import * as DeadLetters from "./deadLetters.ts"
import * as Duplicates from "./duplicates.ts"
import * as Leases from "./leases.ts"
import { fifoRefused } from "./messageRules.ts"
import * as Messages from "./messages.ts"
import * as Moves from "./moves.ts"
import { perMessage, type Refuses } from "./perMessage.ts"
import * as Queues from "./queues.ts"
import * as ReceiveAttempts from "./receiveAttempts.ts"
import { receive } from "./receive.ts"
import * as Recent from "./recent.ts"
import { callRefused } from "./rules.ts"
import type { Ask, Reply } from "./upstream.ts"

interface Env {
  readonly now: () => number
  readonly region: string
  /** The quota of messages of one queue in flight. */
  readonly inFlight: number
}

type Does = (call: Call.Call, ask: Ask) => Promise<Reply | AwsError>

/** Makes the answers of one proxy. */
export const make = ({ inFlight, now, region }: Env) => {
  const [duplicates, leases, messages, recent] = [
    Duplicates.make(),
    Leases.make(now),
    Messages.make(),
    Recent.make(now)
  ]
  const queues = Queues.make(recent)
  const attempts = ReceiveAttempts.make(now, leases)
  const moves = Moves.make(now, queues, messages)

  const does: Readonly<Record<string, Does>> = {
    CreateQueue: queues.create,
    SetQueueAttributes: queues.change,
    GetQueueAttributes: queues.describe,
    DeleteQueue: queues.remove,
    ReceiveMessage: (call, ask) => receive(call, ask, { leases, queues, messages, duplicates, attempts, inFlight }),
    ListDeadLetterSourceQueues: (call, ask) => DeadLetters.list(call, ask, queues),
    StartMessageMoveTask: moves.start,
    ListMessageMoveTasks: moves.list,
    CancelMessageMoveTask: moves.cancel
  }

  return {
    /** Answers a call. `onPurpose` returns the error of entries that a test makes fail. */
    answer: async (call: Call.Call, ask: Ask, onPurpose: Refuses): Promise<Reply | AwsError> => {
      const refused =
        callRefused(call) ??
        recent.refused(call) ??
        (await queues.refused(call, ask)) ??
        (await DeadLetters.refused(call, ask, queues, region))
      if (refused !== undefined) return refused
      const own = does[call.action]
      if (own !== undefined) return own(call, ask)
      const queue = Call.single(call) === "SendMessage" ? await queues.attributes(call.queue, ask) : {}
      return fifoRefused(call, queue) ?? perMessage(call, ask, { leases, messages, queue }, onPurpose)
    },
    duplicate: duplicates.ask,
    close: moves.close
  }
}
