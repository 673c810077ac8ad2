import { isObject } from '../../../core/kit/object.ts'
import { announce, reasonOf } from '../state/announce.ts'
import { fileNameOf } from '../state/session.ts'
import { ask, hostCapabilities } from './connect.ts'

/** In a host, the page keeps nothing in the browser. */
export const readKept: typeof import('../state/browser.ts').readKept = () => null

export const keep: typeof import('../state/browser.ts').keep = () => {}

/** In a host, the history of the reader is in memory, because the history of the browser belongs to the host. */
const steps: string[] = ['']
let listener: (fragment: string) => void = () => {}

export const pushStep: typeof import('../state/browser.ts').pushStep = (fragment) => {
  steps.push(fragment)
  if (steps.length > maxSteps) steps.shift()
}

export const replaceStep: typeof import('../state/browser.ts').replaceStep = (fragment) => {
  steps[steps.length - 1] = fragment
}

export const stepBack: typeof import('../state/browser.ts').stepBack = () => {
  if (steps.length > 1) steps.pop()
  listener(steps.at(-1) ?? '')
}

export const followSteps: typeof import('../state/browser.ts').followSteps = (follow) => {
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
export const createUrl: typeof import('../state/browser.ts').createUrl = (content, type) => {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return `data:${type};base64,${base64Of(bytes)}`
}

export const releaseUrl: typeof import('../state/browser.ts').releaseUrl = () => {}

/** Number of bytes that become arguments of one call. */
const chunkBytes = 8192

function base64Of(bytes: Uint8Array): string {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes)
    parts.push(String.fromCharCode(...bytes.subarray(at, at + chunkBytes)))
  return btoa(parts.join(''))
}

/** In a host, the host saves files, if it can. */
export const canDownload: typeof import('../state/browser.ts').canDownload = () =>
  isObject(hostCapabilities.value.downloadFile)

export const download: typeof import('../state/browser.ts').download = (name, content) => {
  const facts = { uri: `file:///${encodeURIComponent(fileNameOf(name))}`, mimeType: 'application/octet-stream' }
  const body = typeof content === 'string' ? { text: content } : { blob: base64Of(content) }
  const contents = [{ type: 'resource', resource: { ...facts, ...body } }]
  ask('ui/download-file', { contents }).catch((error: unknown) => announce(reasonOf(error)))
}

/** The page in a host does not follow links to files. */
export const downloadFrom: typeof import('../state/browser.ts').downloadFrom = () => {}
