/**
 * The messages that leave at the end of a turn of the event loop. One that is written again may be why its connection was
 * lost. One that is larger than all that nsqd has stored is tried: with nothing before it and nothing behind it that has no
 * answer, so that no other is lost by it.
 */

export interface Turn<A> {
  /** Adds a message, which leaves at the end of this turn or, while one is tried, after its answer. */
  readonly add: (message: A) => void
  /** Notes that so many commands are being written. */
  readonly sent: (commands: number) => void
  /** Notes the answer to a command. */
  readonly answered: () => void
}

interface TurnOptions<A> {
  readonly isOpen: () => boolean
  /** Whether a message leaves with others, and is not tried. */
  readonly isUsual: (message: A) => boolean
  readonly sizeOf: (message: A) => number
  readonly send: (messages: ReadonlyArray<A>) => void
  /** Takes each message that does not leave, because the connection is closed. */
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
