/** A transaction of the memory broker: changes that are made together, or not at all. */
import { BrokerError, OptionKind } from "@requeue/core/port"

/** A transaction. Nothing is visible before `commit`. It locks nothing: a message that is settled otherwise makes `commit` fail. */
export interface Transaction {
  /** Registers an effect. All effects run at the commit, before messages are sent. They must not throw. */
  readonly onCommit: (effect: () => void) => void
  /**
   * Makes all changes.
   *
   * @throws BrokerError when a message is no longer held, or the broker is closed: then it has rolled back. Also when the
   * transaction has ended
   */
  readonly commit: () => void
  /** Drops all changes. Does nothing if the transaction has ended. */
  readonly rollback: () => void
}

/** A change of the broker. */
export interface Change {
  /** Returns why it cannot be made any more. */
  readonly refusal: () => BrokerError.BrokerError | undefined
  readonly make: () => void
}

const failure = (operation: string, detail: string, remedy?: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "memory", operation, reason: "Unsupported", detail, remedy })

export class Changes implements Transaction {
  #state: "open" | "committed" | "rolled back" = "open"
  #changes: Array<Change> = []
  #callbacks: Array<() => void> = []

  add(change: Change): void {
    this.#changes.push(change)
  }

  readonly onCommit = (callback: () => void): void => {
    this.#check("onCommit")
    this.#callbacks.push(callback)
  }

  readonly commit = (): void => {
    this.#check("commit")
    for (const { refusal } of this.#changes) {
      const error = refusal()
      if (error === undefined) continue
      this.rollback()
      throw error
    }
    this.#state = "committed"
    // First, because the changes deliver messages, whose handlers may read what the callbacks write.
    for (const callback of this.#callbacks) callback()
    for (const { make } of this.#changes) make()
  }

  readonly rollback = (): void => {
    if (this.#state === "open") this.#state = "rolled back"
  }

  /** Returns the error of a call on a transaction that has ended. */
  ended(operation: string): BrokerError.BrokerError | undefined {
    if (this.#state === "open") return undefined
    return failure(operation, `the transaction was already ${this.#state}`, "Await every call in the transaction")
  }

  #check(operation: string): void {
    const error = this.ended(operation)
    if (error !== undefined) throw error
  }
}

/** Returns an open transaction, or the error of any other value. */
export const open = (transaction: unknown): Changes | BrokerError.BrokerError => {
  if (transaction instanceof Changes) return transaction.ended("within") ?? transaction
  const detail = `expected a transaction of the memory broker, got ${OptionKind.show(transaction)}`
  return failure("within", detail, "Pass the transaction that MemoryTransaction.run passes to its function")
}
