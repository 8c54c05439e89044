/**
 * Messages that leave at the end of a turn of the event loop. A message that is written again may have caused the loss
 * of its connection. If it is also larger than all messages that nsqd has stored, it is tried alone, while no other
 * message awaits an answer: then no other message is lost with it.
 */

export interface Turn<A> {
  /** Adds a message. It leaves at the end of this turn or, while another is tried, after that one's answer. */
  readonly add: (message: A) => void
  /** Records that `commands` commands are being written. */
  readonly sent: (commands: number) => void
  /** Records the answer to a command. */
  readonly answered: () => void
}

interface TurnOptions<A> {
  readonly isOpen: () => boolean
  /** Whether a message may leave with others. */
  readonly isUsual: (message: A) => boolean
  readonly sizeOf: (message: A) => number
  readonly send: (messages: ReadonlyArray<A>) => void
  /** Called with each message that cannot leave because the connection is closed. */
  readonly drop: (message: A) => void
}

export const make = <A>({ drop, isOpen, isUsual, send, sizeOf }: TurnOptions<A>): Turn<A> => {
  let waiting: Array<A> = []
  /** Commands without an answer. */
  let open = 0
  let isTrying = false
  let isScheduled = false

  const flush = (): void => {
    isScheduled = false
    if (isTrying && isOpen()) return
    const all = waiting
    waiting = []
    if (!isOpen()) return all.forEach(drop)
    const usual: Array<A> = []
    for (const each of all) (isUsual(each) ? usual : waiting).push(each)
    if (usual.length > 0) return send(usual)
    if (open > 0 || waiting.length === 0) return
    isTrying = true
    const smallest = waiting.reduce((a, b) => (sizeOf(b) < sizeOf(a) ? b : a))
    waiting = waiting.filter((each) => each !== smallest)
    send([smallest])
  }

  return {
    add: (message) => {
      waiting.push(message)
      if (isScheduled) return
      isScheduled = true
      process.nextTick(flush)
    },
    sent: (commands) => {
      open += commands
    },
    answered: () => {
      if (--open > 0) return
      isTrying = false
      if (waiting.length > 0) flush()
    }
  }
}
