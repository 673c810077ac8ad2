/** In a host, the page keeps nothing in the browser. */
export const readKept: typeof import('../state/kept.ts').readKept = () => null

export const keep: typeof import('../state/kept.ts').keep = () => {}

/** In a host, the history of the reader is in memory, because the history of the browser belongs to the host. */
const steps: string[] = ['']
let listener: (fragment: string) => void = () => {}

export const pushStep: typeof import('../state/steps.ts').pushStep = (fragment) => {
  steps.push(fragment)
  if (steps.length > maxSteps) steps.shift()
}

export const replaceStep: typeof import('../state/steps.ts').replaceStep = (fragment) => {
  steps[steps.length - 1] = fragment
}

export const stepBack: typeof import('../state/steps.ts').stepBack = () => {
  if (steps.length > 1) steps.pop()
  listener(steps.at(-1) ?? '')
}

export const followSteps: typeof import('../state/steps.ts').followSteps = (follow) => {
  listener = follow
  follow(steps.at(-1) ?? '')
}

/** Goes to the target of a link within the page. */
export function stepTo(fragment: string): void {
  pushStep(fragment)
  listener(fragment)
}

const maxSteps = 200

/** In a host, images are `data:` URLs: its policy allows no others. */
export const createUrl: typeof import('../preview/content-url.ts').createUrl = (content, type) => {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return `data:${type};base64,${base64Of(bytes)}`
}

export const releaseUrl: typeof import('../preview/content-url.ts').releaseUrl = () => {}

/** Number of bytes that become arguments of one call. */
const chunkBytes = 8192

export function base64Of(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes)
    parts.push(String.fromCharCode(...bytes.subarray(at, at + chunkBytes)))
  return btoa(parts.join(''))
}
