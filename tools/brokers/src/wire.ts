/**
 * A proxy that knows the client's commands, and loses one on demand, or the answer to it: then the connection breaks. Or it
 * keeps the answer back.
 */
import { proxy, type MakeGate, type TcpProxy } from "./proxy.ts"

/** A command of a client. */
export interface Command {
  /** The bytes of the command, the first of the input. */
  readonly size: number
  readonly name: string
  /** The names of queues, exchanges or topics that it concerns. */
  readonly about: string
}

/** Reads the command at the beginning of the input; `undefined` until all of it is there. */
export type Reader = (input: Buffer) => Command | undefined

/** A running proxy. */
export interface Wire extends TcpProxy {
  /**
   * Loses the next command for which this holds: the server never sees it. With `answer` it does, and the client never
   * sees what it answers. What was sent before it is seen, and what is sent after it is lost.
   */
  readonly loseNext: (holds: (command: Command) => boolean, part: "command" | "answer") => WireFault
  /**
   * Keeps back what the server answers to the next command for which this holds, and all that it sends on this connection
   * afterwards, until the fault ends.
   */
  readonly delayNext: (holds: (command: Command) => boolean) => WireFault
}

/** A fault that waits for its command, or has happened. */
interface WireFault {
  readonly happened: () => boolean
  readonly end: () => void
}

interface Fault {
  readonly holds: (command: Command) => boolean
  readonly part: "command" | "answer" | "nothing"
  /** Until then the answer is kept back. */
  readonly over: Promise<void>
  happened: boolean
}

/** Forwards connections to a port of 127.0.0.1. Each connection has a reader of its own. */
export const wire = async (target: number, makeReader: () => Reader): Promise<Wire> => {
  const faults = new Set<Fault>()

  const lost = (command: Command): Fault | undefined => {
    const found = [...faults].find(({ happened, holds }) => !happened && holds(command))
    if (found !== undefined) found.happened = true
    return found
  }

  const add = (holds: Fault["holds"], part: Fault["part"]): WireFault => {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const fault: Fault = { holds, part, over, happened: false }
    faults.add(fault)
    const end = () => {
      faults.delete(fault)
      resolve()
    }
    return { happened: () => fault.happened, end }
  }

  const makeGate: MakeGate = (_, hold) => {
    const reader = makeReader()
    /** The beginning of a command whose end is still to come. */
    let input = Buffer.alloc(0)
    return (bytes) => {
      const passed = input.length
      input = Buffer.concat([input, bytes])
      let at = 0
      for (let command = reader(input); command !== undefined; command = reader(input)) {
        const fault = lost(command)
        // A command whose beginning has passed is none to the server without its end.
        if (fault?.part === "nothing") hold(fault.over)
        else if (fault !== undefined) return Math.max(0, at - passed + (fault.part === "answer" ? command.size : 0))
        at += command.size
        input = input.subarray(command.size)
      }
      return undefined
    }
  }

  return {
    ...(await proxy(target, undefined, makeGate)),
    loseNext: add,
    delayNext: (holds) => add(holds, "nothing")
  }
}
