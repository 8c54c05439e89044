/** Faults of single frames between a client and the server: requests and answers that are lost or late. */

/** A frame that a client sends: its kind, and the names of the exchange and the queue that it is about. */
export interface Sent {
  readonly name: "publish" | "settle" | "channel" | "declare" | "consume" | "other"
  readonly about: string
}

/** The fate of a frame. After a loss the connection breaks. */
type Kind = "lostRequest" | "lostAnswer" | "lateAnswer"

/** A fault that waits for its frame. */
interface Armed {
  readonly kind: Kind
  readonly concerns: (sent: Sent) => boolean
  hasHappened: boolean
  /** Ends a delay. */
  release: () => void
}

/** The armed faults of a server. */
export interface Faults {
  readonly arm: (
    kind: Kind,
    concerns: Armed["concerns"]
  ) => { readonly happened: () => boolean; readonly end: () => void }
  /** The fault of a frame, which then is not armed any more; `undefined` for nearly all frames. */
  readonly of: (sent: Sent) => Armed | undefined
}

/** Has no fault at first. */
export const make = (): Faults => {
  const armed = new Set<Armed>()
  return {
    arm: (kind, concerns) => {
      const fault: Armed = { kind, concerns, hasHappened: false, release: () => {} }
      armed.add(fault)
      return {
        happened: () => fault.hasHappened,
        end: () => {
          armed.delete(fault)
          fault.release()
        }
      }
    },
    of: (sent) => {
      for (const fault of armed) {
        if (!fault.concerns(sent)) continue
        armed.delete(fault)
        fault.hasHappened = true
        return fault
      }
      return undefined
    }
  }
}
