import './pictures.css'
import { useEffect, useRef, useState } from 'preact/hooks'
import { lastSegment } from '../../../client/wire.ts'
import { escapeInvisible } from '../words/texts.ts'
import { prune, truncateNesting } from './model/bounds.ts'
import { t } from './words.ts'

/** Content security policy of the previewed document: only inline styles, and embedded images and fonts. */
const policy =
  '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'; img-src data:; font-src data:">'

/** White background and black text, because many documents set only one of both. */
const paper =
  '<style>:root{color-scheme:light;background:#fff;color:#000}[data-href]{color:LinkText;text-decoration:underline}</style>'

/**
 * An HTML document in a sandbox in which nothing runs and nothing is fetched. It is written into the empty document `frame.html`, because
 * the policy of the page would forbid the styles of the document.
 */
export function HtmlPreview({ text, uri }: { readonly text: string; readonly uri: string }) {
  const outer = useRef<HTMLIFrameElement>(null)
  const [isCut, setCut] = useState(false)
  const name = escapeInvisible(lastSegment(uri))
  useEffect(() => {
    const frame = outer.current
    if (frame === null) return
    const fill = () => {
      const document = frame.contentDocument
      // Before the frame has loaded, it holds an empty document without a policy.
      if (document === null || !document.URL.endsWith('/frame.html') || document.body === null) return
      const inner = document.createElement('iframe')
      inner.setAttribute('sandbox', '')
      inner.setAttribute('referrerpolicy', 'no-referrer')
      inner.title = name
      const { html, isCut } = withoutLinks(frame, text)
      inner.srcdoc = `<!doctype html>${policy}${paper}${html}`
      setCut(isCut)
      Object.assign(inner.style, { position: 'fixed', inset: '0', width: '100%', height: '100%', border: '0' })
      document.documentElement.lang = document.documentElement.lang || 'en'
      document.body.replaceChildren(inner)
    }
    frame.addEventListener('load', fill)
    if (frame.contentDocument?.readyState === 'complete') fill()
    return () => frame.removeEventListener('load', fill)
  }, [text, name])
  return (
    <div class="column">
      {isCut ? <p class="preview-banner">{t('shortened')}</p> : null}
      <p class="preview-note small">{t('sandboxNote')}</p>
      <iframe ref={outer} class="page-frame" src="frame.html" title={t('frameTitle', { name })} />
    </div>
  )
}

/**
 * Removes the means by which a browser contacts other servers before it applies a policy: elements that look up names, connect, redirect or
 * contain documents, and the targets of links. Links within the document are kept. They name `about:srcdoc`, because a bare fragment would
 * refer to the page around the document.
 */
function withoutLinks(frame: HTMLIFrameElement, text: string): { readonly html: string; readonly isCut: boolean } {
  const shallow = truncateNesting(text)
  // The parser of the frame: the page itself accepts markup only from a Trusted Types policy.
  const { DOMParser: Parser } = (frame.contentWindow ?? window) as Window & typeof globalThis
  const dom = new Parser().parseFromString(shallow, 'text/html')
  const away = 'link, base, script, iframe, frame, object, embed, portal, meta[http-equiv], [attributeName$="href" i]'
  const isCut = prune(dom.documentElement) || shallow !== text
  for (const element of dom.querySelectorAll(away)) element.remove()
  // The sandbox blocks event handlers and scripts. They are removed, so that they do not even try to run.
  for (const element of dom.querySelectorAll('*'))
    for (const { name, value } of [...element.attributes])
      if (/^on/i.test(name) || /^\s*javascript:/i.test(value)) element.removeAttribute(name)
  for (const link of dom.querySelectorAll('a, area, math, math *'))
    for (const name of ['href', 'xlink:href']) {
      const target = link.getAttribute(name)
      if (target === null) continue
      link.removeAttribute(name)
      if (target.startsWith('#')) {
        link.setAttribute('href', `about:srcdoc${target}`)
        continue
      }
      link.setAttribute('data-href', target)
      if (!link.hasAttribute('title')) link.setAttribute('title', target)
    }
  return { html: dom.documentElement.outerHTML, isCut }
}
