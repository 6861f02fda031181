export { type Formats, formatsIn } from '../../runtime/formats.ts'
