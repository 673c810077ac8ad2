/**
 * The one policy of the page for what browsers take from trusted hands only: addresses of its own workers. Nothing else of ours needs
 * one: markup is made of nodes, and what DOMPurify cleans has a policy of its own.
 */
interface ScriptPolicy {
  createScriptURL(url: string): unknown
}

interface Factory {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): ScriptPolicy
}

let policy: ScriptPolicy | undefined

function scriptUrl(url: string): string | URL {
  const { trustedTypes } = globalThis as { trustedTypes?: Factory }
  if (trustedTypes === undefined) return ownScript(url)
  policy ??= trustedTypes.createPolicy('hikidashi', { createScriptURL: ownScript })
  // Browsers take the trusted address in the place of a text; the types of the DOM do not know it yet.
  return policy.createScriptURL(url) as string
}

function ownScript(url: string): string {
  const { href, origin } = new URL(url, document.baseURI)
  const assets = new URL('assets/', document.baseURI).href
  if (origin !== location.origin || !href.startsWith(assets)) throw new TypeError('This is no script of the page.')
  return href
}

/** A worker whose script was built with the page. */
export function startWorker(url: string): Worker {
  return new Worker(scriptUrl(url), { type: 'module' })
}
