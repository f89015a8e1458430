// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Deposit} from "./Deposit.sol";

/// @notice A deposit address and what to send from it to its merchant.
/// @param merchant Settlement address of the invoice.
/// @param id The invoice's on-chain id, its commitment.
/// @param token An ERC-20 contract, or 0 for the network's coin.
struct Sweep {
    address merchant;
    bytes32 id;
    address token;
}

/// @title Quittance deposit factory
/// @notice Gives each invoice a deposit address, which is known before any code is deployed there. Anyone may send its
/// balance to its merchant.
/// @dev It has no owner and no storage, and holds no money. Its code is the same at every address, so that it can be
/// compared by hash.
contract DepositFactory {
    /// @notice The gas that `sweep` requires for each of its deposits, enough to deploy one and to transfer a token,
    /// and the gas that it requires in addition: the first transfer to a merchant costs more.
    uint256 public constant GAS_PER_SWEEP = 80_000;
    uint256 public constant GAS_BESIDES = 60_000;

    /// @dev The maximum gas of a deposit, and the part of it that is reserved for the event of a failure.
    uint256 private constant MAX_GAS_PER_SWEEP = 500_000;
    uint256 private constant GAS_PER_FAILURE = 5_000;

    /// @notice The balance of a token at a deposit address went to the merchant.
    /// @param amount The amount that left the deposit address, in the token's minor units.
    event Swept(address indexed deposit, address indexed token, address indexed merchant, uint256 amount);

    /// @notice The balance of a token stays at a deposit address.
    event SweepFailed(address indexed deposit, address indexed token);

    /// @notice A transaction with this many deposits needs more gas.
    error NotEnoughGas(uint256 needed);

    constructor() {
        assert(address(new Deposit()) == implementation());
    }

    /// @notice The contract that deposit addresses are clones of. The constructor creates it, so its address is the
    /// address of the first contract that this one creates.
    function implementation() public view returns (address) {
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"d694", address(this), hex"01")))));
    }

    /// @notice The deposit address of an invoice with this settlement address and on-chain id.
    function depositAddress(address merchant, bytes32 id) public view returns (address) {
        return Clones.predictDeterministicAddressWithImmutableArgs(implementation(), abi.encodePacked(merchant), id);
    }

    /// @notice Sends the balances of deposit addresses to their merchants. A failed sweep changes nothing, and does not
    /// prevent the others.
    /// @dev No deposit can use up the gas of the others: GAS_PER_SWEEP is reserved for each following one.
    function sweep(Sweep[] calldata sweeps) external {
        uint256 kept = sweeps.length * GAS_PER_SWEEP;
        if (gasleft() < kept + GAS_BESIDES) revert NotEnoughGas(kept + GAS_BESIDES);
        for (uint256 i = 0; i < sweeps.length; ++i) {
            kept -= GAS_PER_SWEEP;
            uint256 share = Math.min(gasleft() - kept, MAX_GAS_PER_SWEEP);
            // An empty catch does not copy the call's revert data.
            try this.sweepOne{gas: share - GAS_PER_FAILURE}(sweeps[i]) {}
            catch {
                emit SweepFailed(depositAddress(sweeps[i].merchant, sweeps[i].id), sweeps[i].token);
            }
        }
    }

    /// @notice Sends the balance of one deposit address to its merchant, after deploying the address's code if it has
    /// none. It reverts if that fails.
    function sweepOne(Sweep calldata s) external returns (uint256 amount) {
        address deposit = depositAddress(s.merchant, s.id);
        if (deposit.code.length == 0) {
            Clones.cloneDeterministicWithImmutableArgs(implementation(), abi.encodePacked(s.merchant), s.id);
        }
        amount = Deposit(payable(deposit)).sweep(s.token);
        if (amount > 0) emit Swept(deposit, s.token, s.merchant, amount);
    }
}
