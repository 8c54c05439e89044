/**
 * The requests of a channel: one is under way at a time, and the others wait for its answer. The errors are those of amqplib 2.3.1,
 * `lib/channel.js`.
 */
import type { Sent } from "./Faults.ts"
import { format, type Refusal } from "./Refusal.ts"
import type { Session } from "./Session.ts"

/** A request, and its continuation. */
export interface Request {
  /** The driver's name of its method. */
  readonly method: string
  readonly sent: Sent
  /** Carries it out on the server, and returns the answer. */
  readonly run: (session: Session) => unknown
  /** Continues on the server once the answer is sent. */
  readonly after: (session: Session, answer: never) => void
}

interface Waiting extends Request {
  readonly resolve: (answer: never) => void
  readonly reject: (error: Error) => void
}

/** The requests of one channel. */
export class Requests {
  readonly #write: (request: Request) => void
  #waiting: Array<Waiting> = []

  constructor(write: (request: Request) => void) {
    this.#write = write
  }

  /** Writes a request, now or after those before it. */
  add<A>(request: Request): Promise<A> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...request, resolve, reject })
      if (this.#waiting.length === 1) this.#write(request)
    })
  }

  /** The first request has its answer. The next one is written before the caller runs. */
  answered(answer: unknown): void {
    const first = this.#waiting.shift()
    const [next] = this.#waiting
    if (next !== undefined) this.#write(next)
    first?.resolve(answer as never) // The caller gets what `run` returns.
  }

  /** The server has closed the channel, maybe because of the first request. */
  refused(refusal: Refusal): void {
    const first = this.#waiting.shift()
    const text = format(refusal)
    first?.reject(
      new Error(
        refusal.method === first.method
          ? `Operation failed: ${first.method}; ${text}`
          : `Channel closed by server: ${text}`
      )
    )
  }

  /** No answer follows. */
  end(): void {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error("Channel ended, no reply will be forthcoming"))
  }
}
