export { displayWidth, pad, truncate } from '../../runtime/width.ts'
