/**
 * Decides which actions a request may do. Authorization by passwords and by tokens is built in. For anything else, such as
 * the sessions of your application, write a function.
 */
import { createHash, timingSafeEqual } from "node:crypto"

/**
 * The actions of operators, the weakest first. Each action includes all weaker ones. A role has the name of its strongest
 * action: the role `redrive` also allows `view` and `bodies`.
 *
 * - `view`: queues, causes, and letters without their bodies.
 * - `bodies`: bodies of letters, without the parts that `redact` hides.
 * - `redrive`: redrive, park and edit letters.
 * - `purge`: remove letters for good.
 */
export type Action = "view" | "bodies" | "redrive" | "purge"

/** Every {@link Action}, the weakest first. */
export const actions: ReadonlyArray<Action> = ["view", "bodies", "redrive", "purge"]

/** The answer to a request. */
export type Decision =
  | {
      readonly _tag: "Granted"
      /** The name of the operator, for the audit. */
      readonly operator: string
    }
  | { readonly _tag: "Forbidden"; readonly operator: string }
  | {
      readonly _tag: "Unknown"
      /**
       * The operator's name in the request. With it, many refused requests under one name do not block other names at the
       * same address. Default: none.
       */
      readonly operator?: string | undefined
      /** The value of the response header `www-authenticate`. Default: none. */
      readonly challenge?: string | undefined
    }

/**
 * Decides whether a request may do an action; an error refuses the request. For each request, the console calls this
 * function once for the request's action. If the action is granted, the console calls it again for every action, to hide
 * buttons that would be refused.
 */
export type Authorize = (request: Request, action: Action) => Decision | Promise<Decision>

/** Whether a role allows an action. */
export const allows = (role: Action, action: Action): boolean => actions.indexOf(action) <= actions.indexOf(role)

const decide = (operator: string, role: Action, action: Action): Decision => ({
  _tag: allows(role, action) ? "Granted" : "Forbidden",
  operator
})

/**
 * Returns authorization that grants a role to every request. The audit records all of them under the same operator name.
 * Use it only if no other machine can reach the console.
 */
export const everybody =
  (operator: string, role: Action): Authorize =>
  (_, action) =>
    decide(operator, role, action)

/** The least length of a secret. */
const fewest = 12

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

interface Known {
  readonly operator: string
  readonly role: Action
  readonly digest: Buffer
}

/** Compares with every known secret in constant time. */
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
  /** The name of the user, without a colon. */
  readonly name: string
  /** The password, at least 12 characters. */
  readonly password: string
  /** The user's role, named by its strongest action. */
  readonly role: Action
}

/**
 * Returns authorization by users with passwords, for browsers: HTTP's basic authentication. https://www.rfc-editor.org/rfc/rfc7617
 *
 * @throws RangeError when there is no user, or a name is empty or has a colon, a password is short or a role is unknown
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
  /** The name of the token's holder, for the audit. */
  readonly name: string
  /** The token, at least 12 characters. */
  readonly token: string
  /** The token's role, named by its strongest action. */
  readonly role: Action
}

/**
 * Returns authorization by tokens: HTTP's bearer authentication. https://www.rfc-editor.org/rfc/rfc6750
 *
 * @throws RangeError when there is no token, or a token is short, a name is empty or a role is unknown
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
