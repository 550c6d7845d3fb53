//! Takes the state of a configured instance and makes a component of it that
//! starts out in that state.
//!
//! The work is wizer's: it adds functions to the component that read out its
//! memories and globals, and writes what they gave back into a new component.
//! It refuses components whose state lies elsewhere (changing tables, nested
//! components); those are configured anew for every call.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Instance, Lift, WasmList};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

use crate::limits;
use crate::state::HostState;

/// The export that is added to a component to read out its state.
pub(crate) const EXPORT: &str = "wasmtime:wizer/access";

/// A component that can be asked for its state.
pub(crate) struct Readable<'a> {
    wizer: Wizer,
    context: ComponentContext<'a>,
    /// The bytes to compile and run in place of the original.
    pub(crate) component: Vec<u8>,
}

impl<'a> Readable<'a> {
    /// Prepares a component; none: no snapshot of it can be taken.
    pub(crate) fn prepare(component: &'a [u8]) -> Option<Self> {
        let mut wizer = Wizer::new();
        wizer.keep_init_func(true);
        let (context, readable) = calmly(|| wizer.instrument_component(component).ok())?;
        Some(Self { wizer, context, component: readable })
    }

    /// Makes a component of the state that `instance` is in now.
    pub(crate) fn snapshot(&self, store: &mut Store<HostState>, instance: Instance) -> Option<Vec<u8>> {
        store.set_hostcall_fuel(limits::MEMORY.saturating_mul(2));
        let mut reader = Reader { store, instance, has_failed: false };
        let taken = calmly(|| {
            let future = pin!(self.wizer.snapshot_component(&self.context, &mut reader));
            // Nothing in it waits: the reader answers at once.
            match future.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(taken) => taken.ok(),
                Poll::Pending => None,
            }
        });
        taken.filter(|_| !reader.has_failed)
    }
}

/// Runs a step of wizer, which panics where it meets what it does not know; a
/// component then goes without a snapshot.
fn calmly<T>(step: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(step)).ok().flatten()
}

/// Calls the functions that wizer added.
struct Reader<'a> {
    store: &'a mut Store<HostState>,
    instance: Instance,
    has_failed: bool,
}

impl Reader<'_> {
    fn call<R, T>(
        &mut self,
        place: &str,
        name: &str,
        use_it: impl FnOnce(&mut Store<HostState>, R) -> T,
    ) -> Option<T>
    where
        R: Lift + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let place = self.instance.get_export_index(&mut *self.store, None, place)?;
        let function = self.instance.get_export_index(&mut *self.store, Some(&place), name)?;
        let function = self.instance.get_typed_func::<(), (R,)>(&mut *self.store, function).ok()?;
        let (value,) = function.call(&mut *self.store, ()).ok()?;
        Some(use_it(self.store, value))
    }

    fn number<R>(&mut self, place: &str, name: &str) -> R
    where
        R: Lift + Default + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let number = self.call(place, name, |_, number: R| number);
        self.has_failed |= number.is_none();
        number.unwrap_or_default()
    }
}

impl ComponentInstanceState for Reader<'_> {
    async fn call_func_ret_list_u8(&mut self, place: &str, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let read = self.call(place, name, |store, bytes: WasmList<u8>| contents(bytes.as_le_slice(&*store)));
        self.has_failed |= read.is_none();
    }

    async fn call_func_ret_s32(&mut self, place: &str, name: &str) -> i32 {
        self.number(place, name)
    }

    async fn call_func_ret_s64(&mut self, place: &str, name: &str) -> i64 {
        self.number(place, name)
    }

    async fn call_func_ret_f32(&mut self, place: &str, name: &str) -> u32 {
        self.number::<f32>(place, name).to_bits()
    }

    async fn call_func_ret_f64(&mut self, place: &str, name: &str) -> u64 {
        self.number::<f64>(place, name).to_bits()
    }
}
