/**
 * Who may do what: one function answers it for each request. Users with passwords and tokens are built in; anything else,
 * such as the session of the application around the console, is a function of your own.
 */
import { createHash, timingSafeEqual } from "node:crypto"

/**
 * Actions, the weakest first; a role is the strongest action that it allows.
 *
 * - `view`: queues, causes, and letters without their bodies.
 * - `bodies`: bodies of letters, as far as `redact` leaves them.
 * - `redrive`: to send letters back to work.
 * - `purge`: to remove letters for good.
 */
export type Action = "view" | "bodies" | "redrive" | "purge"

/** Every {@link Action}, the weakest first. */
export const actions: ReadonlyArray<Action> = ["view", "bodies", "redrive", "purge"]

/** The answer to a request. */
export type Decision =
  | {
      readonly _tag: "Granted"
      /** Who it is, for the audit. */
      readonly operator: string
    }
  | { readonly _tag: "Forbidden"; readonly operator: string }
  | {
      readonly _tag: "Unknown"
      /** Whom the request says it is, wrongly: only they are delayed after many wrong passwords. Default: nobody. */
      readonly operator?: string | undefined
      /** The challenge of the header `www-authenticate`. Default: none. */
      readonly challenge?: string | undefined
    }

/**
 * Decides on an action of a request. What it throws is a refusal. It is asked for each action, so that a page shows no button
 * that is refused: about five times for a request.
 */
export type Authorize = (request: Request, action: Action) => Decision | Promise<Decision>

/** Whether a role allows an action. */
export const allows = (role: Action, action: Action): boolean => actions.indexOf(action) <= actions.indexOf(role)

const decide = (operator: string, role: Action, action: Action): Decision => ({
  _tag: allows(role, action) ? "Granted" : "Forbidden",
  operator
})

/** Grants a role to everybody, under a name: for a console that only this machine reaches. */
export const everybody =
  (operator: string, role: Action): Authorize =>
  (_, action) =>
    decide(operator, role, action)

/** The fewest characters of a secret. */
const fewest = 12

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

interface Known {
  readonly operator: string
  readonly role: Action
  readonly digest: Buffer
}

/** Compares with each that is known, in the same time whichever it is. */
const find = (known: ReadonlyArray<Known>, secret: string): Known | undefined => {
  const given = digest(secret)
  return known.filter((each) => timingSafeEqual(each.digest, given))[0]
}

const known = (call: string, operator: string, role: Action, secret: string, whole: string): Known => {
  if (!actions.includes(role)) throw new RangeError(`${call}: role must be one of ${actions.join(", ")}, got ${role}`)
  if (operator === "") throw new RangeError(`${call}: name must be text that is not empty`)
  if (secret.trim().length < fewest) {
    throw new RangeError(
      `${call}: the secret of ${operator} must have at least ${fewest} characters, got ${secret.trim().length}`
    )
  }
  return { operator, role, digest: digest(whole) }
}

const credentials = (request: Request, scheme: "basic" | "bearer"): string | undefined => {
  const [, given, value] = /^(\w+) +([\w.~+/=-]+)$/.exec(request.headers.get("authorization") ?? "") ?? []
  return given?.toLowerCase() === scheme ? value : undefined
}

/** A user with a password. */
export interface User {
  /** The name, without a colon. */
  readonly name: string
  /** At least 12 characters. */
  readonly password: string
  /** The strongest action. */
  readonly role: Action
}

/**
 * Users with passwords, for browsers: HTTP's basic authentication. https://www.rfc-editor.org/rfc/rfc7617
 *
 * @throws RangeError when there is no user, or one has no name, a colon in it, a short password or no such role
 */
export const basic = (users: ReadonlyArray<User>): Authorize => {
  if (users.length === 0) throw new RangeError("Authorization.basic: there must be at least one user")
  const all = users.map(({ name, password, role }) => {
    if (name.includes(":")) throw new RangeError(`Authorization.basic: name must have no colon, got ${name}`)
    return known("Authorization.basic", name, role, password, `${name}:${password}`)
  })
  return (request, action) => {
    const given = credentials(request, "basic")
    const text = given === undefined ? undefined : Buffer.from(given, "base64").toString()
    const user = text === undefined ? undefined : find(all, text)
    return user === undefined
      ? { _tag: "Unknown", operator: text?.split(":")[0], challenge: 'Basic realm="Requeue", charset="UTF-8"' }
      : decide(user.operator, user.role, action)
  }
}

/** A token of a script or of a proxy. */
export interface Token {
  /** The name of whoever has it, for the audit. */
  readonly name: string
  /** At least 12 characters. */
  readonly token: string
  /** The strongest action. */
  readonly role: Action
}

/**
 * Tokens: HTTP's bearer authentication. https://www.rfc-editor.org/rfc/rfc6750
 *
 * @throws RangeError when there is no token, or one is short, or has no name or no such role
 */
export const bearer = (tokens: ReadonlyArray<Token>): Authorize => {
  if (tokens.length === 0) throw new RangeError("Authorization.bearer: there must be at least one token")
  const all = tokens.map(({ name, role, token }) => known("Authorization.bearer", name, role, token, token))
  return (request, action) => {
    const given = credentials(request, "bearer")
    const token = given === undefined ? undefined : find(all, given)
    return token === undefined
      ? { _tag: "Unknown", challenge: 'Bearer realm="Requeue"' }
      : decide(token.operator, token.role, action)
  }
}
