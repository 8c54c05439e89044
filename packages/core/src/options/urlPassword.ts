/** Passwords of URLs in texts that errors show. */

/** A password that is not percent-encoded may have anything in it, and ends at the last @. */
const account = /^(\W*\w[\w+.-]*:\/\/[^:]*:)(.*)@/s

/** The password of a text that is a URL. */
export const passwordOf = (text: string): string | undefined => account.exec(text)?.[2]

/** A text for an error. If it is a URL, its password is `***`. */
export const withoutPassword = (text: string): string => text.replace(account, "$1***@")
