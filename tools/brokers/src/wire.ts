/** A proxy that knows the client's commands, and loses one on demand, or the answer to it. The connection breaks then. */
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
  readonly loseNext: (
    holds: (command: Command) => boolean,
    part: "command" | "answer"
  ) => { readonly happened: () => boolean; readonly end: () => void }
}

interface Fault {
  readonly holds: (command: Command) => boolean
  readonly part: "command" | "answer"
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

  const makeGate: MakeGate = () => {
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
        if (fault !== undefined) return Math.max(0, at - passed + (fault.part === "answer" ? command.size : 0))
        at += command.size
        input = input.subarray(command.size)
      }
      return undefined
    }
  }

  return {
    ...(await proxy(target, undefined, makeGate)),
    loseNext: (holds, part) => {
      const fault: Fault = { holds, part, happened: false }
      faults.add(fault)
      return { happened: () => fault.happened, end: () => void faults.delete(fault) }
    }
  }
}
