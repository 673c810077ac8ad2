import { base64Of } from './base64.ts'

/** In a host, images are `data:` URLs: its policy allows no others. */
export const createUrl: typeof import('../preview/content-url.ts').createUrl = (content, type) => {
  const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
  return `data:${type};base64,${base64Of(bytes)}`
}

export const releaseUrl: typeof import('../preview/content-url.ts').releaseUrl = () => {}
