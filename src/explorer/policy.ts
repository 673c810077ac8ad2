/** Headers of every answer: the page may not be framed, opened or embedded by others, and sends no referrer. */
const common = {
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Permissions-Policy': [
    ...['accelerometer', 'autoplay', 'camera', 'clipboard-read', 'display-capture', 'encrypted-media', 'fullscreen'],
    ...['geolocation', 'gyroscope', 'hid', 'magnetometer', 'microphone', 'midi', 'payment', 'picture-in-picture'],
    ...['publickey-credentials-get', 'screen-wake-lock', 'serial', 'usb', 'xr-spatial-tracking'],
  ]
    .map((name) => `${name}=()`)
    .join(', '),
} as const

/** The page runs its own scripts and styles, asks only where it came from, and makes no text into markup unchecked. */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src 'self' blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify hikidashi',
].join('; ')

/**
 * The empty frame around a document that is previewed: what is put into it inherits this. Nothing runs, nothing is loaded; its own
 * styles and images show.
 */
const framePolicy = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  'img-src data:',
  'font-src data:',
  'media-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ')

export const pageHeaders = { ...common, 'Content-Security-Policy': pagePolicy, 'X-Frame-Options': 'DENY' } as const

export const frameHeaders = {
  ...common,
  'Content-Security-Policy': framePolicy,
  'X-Frame-Options': 'SAMEORIGIN',
} as const
