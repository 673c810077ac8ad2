import { isObject } from '../../../core/kit/object.ts'
import { announce, reasonOf } from '../state/announce.ts'
import { fileNameOf } from '../state/content-link.ts'
import { ask, hostCapabilities } from './bridge.ts'
import { base64Of } from './browser.ts'

/** In a host, the host saves files, if it can. */
export const canDownload: typeof import('../state/download.ts').canDownload = () =>
  isObject(hostCapabilities.value.downloadFile)

export const download: typeof import('../state/download.ts').download = (name, content) => {
  const facts = { uri: `file:///${encodeURIComponent(fileNameOf(name))}`, mimeType: 'application/octet-stream' }
  const body = typeof content === 'string' ? { text: content } : { blob: base64Of(content) }
  const contents = [{ type: 'resource', resource: { ...facts, ...body } }]
  ask('ui/download-file', { contents }).catch((error: unknown) => announce(reasonOf(error)))
}

/** The page in a host does not follow links to files. */
export const downloadFrom: typeof import('../state/download.ts').downloadFrom = () => {}
