/**
 * A proxy that knows the client's commands. On demand it loses a command, or the answer to it, and the connection breaks. Or it
 * holds the answer back.
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

/** Reads the command at the beginning of the input; `undefined` while it is incomplete. */
export type Reader = (input: Buffer) => Command | undefined

/** A running proxy. */
export interface Wire extends TcpProxy {
  /**
   * Loses the next command that matches: the server never sees it. With `answer` the server sees it, and the client never sees
   * the answer. Earlier bytes arrive, later ones are lost.
   */
  readonly loseNext: (holds: (command: Command) => boolean, part: "command" | "answer") => WireFault
  /**
   * Holds back the server's answer to the next command that matches, and all that it sends on this connection afterwards, until
   * the fault ends.
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

/** Forwards connections to a port of 127.0.0.1. Each connection has its own reader. */
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
    /** The start of an incomplete command. */
    let input = Buffer.alloc(0)
    return (bytes) => {
      const passed = input.length
      input = Buffer.concat([input, bytes])
      let at = 0
      for (let command = reader(input); command !== undefined; command = reader(input)) {
        const fault = lost(command)
        // A command whose start has passed is ignored by the server without its end.
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
